"""Tools to test lifecycles, aggregates and stores of your own."""
