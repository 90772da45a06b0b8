"""The queue at work: publishing, leases, workers."""
