# Only its name matters here.
