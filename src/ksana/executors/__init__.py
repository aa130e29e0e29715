"""What runs a job: one module an executor."""
