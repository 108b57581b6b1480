"""What the user knows, in physical units: text and numbers in, checked statements out."""
