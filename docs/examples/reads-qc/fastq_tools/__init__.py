"""Reading FASTQ, counting what is in it, and drawing what was counted."""
