package profile

// ParseNodes reads a node count as the profile grammar has it, 1 … MaxNodes.
func ParseNodes(text string) (int, error) { return parseNodes(text) }
