"""What was suggested already: typed through, remembered, refused, continued and prepared."""
