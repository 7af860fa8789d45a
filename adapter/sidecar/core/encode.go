package core

import "github.com/evoslurm/evoslurm/adapter/sidecar/core/state"

// Encode returns the whole state between two steps as bytes, without the parameters of plugins.
func (c *Core) Encode() ([]byte, error) { return state.Encode(c.c) }

// Decode returns a core with the state that Encode has written in the same version of the sidecar. It continues as the
// other core would. An error says what is wrong with the bytes and what to do instead.
func Decode(data []byte, version string) (*Core, error) {
	c, err := state.Decode(data, version)
	if err != nil {
		return nil, err
	}
	return &Core{c}, nil
}
