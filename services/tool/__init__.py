"""Executes tools: queries over data, reports, charts, search and summaries."""
