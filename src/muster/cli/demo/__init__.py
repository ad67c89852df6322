"""`muster demo`: a 1,024-accelerator job on a simulated cluster, from creation to the loss of a rack."""
