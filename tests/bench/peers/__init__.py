"""The same work done with other libraries, as their documentation shows it."""
