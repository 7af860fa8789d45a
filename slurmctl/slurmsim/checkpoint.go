package slurmsim

// A checkpoint of a cluster is its exported fields, written by a codec that keeps what pointers
// share, and read into a new cluster with the same options. A field with the tag `codec:"-"` is not
// written. It is a cache, comes from the options, or is in use only while a cluster is busy.

// Parts lists what the state holds behind interfaces. The order is part of the format.
var Parts = []any{continues{}, Wake{}, wakesUp{}, looks, reports{}, launches{}, exits{}, lasted{}, leaves{}, answers{}, forgets(0), gives{}, expires{}, times{}}

// Busy reports whether something is under way that cannot be written: a command, a [Func], or a
// function on the agenda.
func (c *Cluster) Busy() bool {
	for _, p := range c.Processes {
		if _, is := p.Program.(Func); is {
			return true
		}
	}
	for i := range c.Agenda {
		if _, is := c.Agenda[i].Do.(callback); is {
			return true
		}
	}
	return false
}

// Restored must be called once the state has been read.
func (c *Cluster) Restored() {
	for _, p := range c.Processes {
		p.cluster = c
	}
}

// Restored sets how many commands the client has run, and whether updates need an account.
func (k *Client) Restored(calls uint64, wantsAccount bool) {
	k.calls, k.wantsAccount = calls, wantsAccount
}
