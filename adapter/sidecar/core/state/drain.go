package state

// Drained reports whether the sidecar adopts and holds nothing new.
func (c *Core) Drained() bool { return c.Config.Drain.On() }

// Releases reports whether the sidecar gives everything up.
func (c *Core) Releases() bool { return c.Config.Drain.Releases() }

// DrainWords says who drained the sidecar, and when.
func (c *Core) DrainWords() string {
	d, _ := c.Config.Drain.Parse() // the configuration was checked
	return d.Words()
}
