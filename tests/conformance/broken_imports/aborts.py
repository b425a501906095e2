import os

print("no processor of this kind")
os.abort()
