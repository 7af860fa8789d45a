package profile

// ParseNodes reads a node count of the profile grammar, 1 … MaxNodes.
func ParseNodes(text string) (int, error) { return parseNodes(text) }
