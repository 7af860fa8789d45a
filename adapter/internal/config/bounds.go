package config

// Shares is how much of a partition one owner of holds may have ahead of time, in percent.
type Shares struct {
	Reservations int `mapstructure:"reservations"` // of max_holds
	Nodes        int `mapstructure:"nodes"`        // of the partition's nodes, held at once
	NodeHours    int `mapstructure:"node_hours"`   // of what these nodes make in hold_ahead
}

// HoldShares bounds what is held ahead of time, per partition.
type HoldShares struct {
	Job       Shares `mapstructure:"job"`
	User      Shares `mapstructure:"user"`
	Account   Shares `mapstructure:"account"`
	Partition Shares `mapstructure:"partition"` // of all users together
}

// HoldScopes lists the owners of holds that have shares, the narrowest first.
var HoldScopes = []string{"job", "user", "account", "partition"}

// Of returns the shares of one of the HoldScopes.
func (h HoldShares) Of(scope string) Shares {
	switch scope {
	case "job":
		return h.Job
	case "user":
		return h.User
	case "account":
		return h.Account
	case "partition":
		return h.Partition
	}
	return Shares{}
}

func (h HoldShares) validate(check func(ok bool, key, format string, args ...any)) {
	for _, scope := range HoldScopes {
		s := h.Of(scope)
		for _, share := range []struct {
			key   string
			value int
		}{{"reservations", s.Reservations}, {"nodes", s.Nodes}, {"node_hours", s.NodeHours}} {
			check(share.value >= 1 && share.value <= 100, "hold_shares."+scope+"."+share.key, "%d; want a percentage from 1 to 100", share.value)
		}
	}
}
