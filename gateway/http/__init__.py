"""Is the HTTP door of the gateway: OpenAI clients, curl and browsers come in here."""
