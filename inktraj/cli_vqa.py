"""``inktraj vqa``: arguments and progress; the work is in `inktraj.vqa`."""
