"""What planning and runs both speak of: workflows, where they can run, and schedule plans."""
