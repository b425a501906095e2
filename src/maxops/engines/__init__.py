"""What runs a call. Each engine gives the same bits; each is imported only when it is used."""
