package trace

// SetMostFile sets the bound of JSON that is not streamed.
func SetMostFile(n int64) { mostFile = n }
