"""Turns a question about a table into a query, and its rows into facts and prose."""
