"""What readers and programs are given: the page, the summaries, the files of verdicts."""
