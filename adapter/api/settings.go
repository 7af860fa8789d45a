package api

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// Setting is a key of the configuration that operators may set at run time, as it counts now.
type Setting struct {
	Key        string    `json:"key"`
	Value      string    `json:"value"`      // lists with commas
	Configured string    `json:"configured"` // the configuration's
	By         string    `json:"by"`         // who set it; "": nobody
	At         time.Time `json:"at,omitzero"`
}

// SettingsRequest changes settings, all or none. For operators.
type SettingsRequest struct {
	Set        map[string]string   `json:"set,omitempty"`        // new values by key
	Add        map[string][]string `json:"add,omitempty"`        // to lists
	Remove     map[string][]string `json:"remove,omitempty"`     // from lists
	Configured []string            `json:"configured,omitempty"` // keys that get the configuration's value again
}

// Settings holds settings, and what is doubtful about them, such as unknown names.
type Settings struct {
	Settings []Setting `json:"settings"`
	Warnings []string  `json:"warnings"`
}

// AccessQuery asks whether a job of the caller may evolve. Fields that are empty are not checked.
type AccessQuery struct {
	Account, QOS, Partition string // Partition may be a list with commas
}

// Access says whether a job may evolve.
type Access struct {
	Allowed   bool     `json:"allowed"`
	Reason    string   `json:"reason"`    // why not, and what to do
	Unchecked []string `json:"unchecked"` // kinds of names with lists that the query left out: accounts, qos, partitions
}

// Setter is the part of a Backend for settings and budgets.
type Setter interface {
	Settings(ctx context.Context) (Settings, error)
	// ChangeSettings answers with the settings of the request. The caller's name is for the event log.
	ChangeSettings(ctx context.Context, r SettingsRequest, caller string) (Settings, error)
	Access(ctx context.Context, uid uint32, q AccessQuery) (Access, error)
	Budget(ctx context.Context) (Budget, error)
	Power(ctx context.Context) (Power, error)
	PowerHistory(ctx context.Context) (PowerHistory, error)
}

// settings reads or changes the settings.
func (d *desk) settings(ctx context.Context, r request) (any, error) {
	if !r.caller.known {
		return nil, Errorf(ErrDenied, "this needs a MUNGE credential")
	}
	if !d.rights.trusted(r.caller) {
		return nil, Errorf(ErrForbidden, "settings are for operators (see operators in the configuration)")
	}
	ctx, cancel := context.WithTimeout(ctx, backendTimeout)
	defer cancel()
	if r.Method == http.MethodGet {
		return d.backend.Settings(ctx)
	}
	var req SettingsRequest
	if err := readOne(r, &req); err != nil {
		return nil, err
	}
	return d.backend.ChangeSettings(ctx, req, userName(r.caller.uid))
}

// access answers about the caller's own jobs only: the lists have other users' names.
func (d *desk) access(ctx context.Context, r request) (any, error) {
	if !r.caller.known {
		return nil, Errorf(ErrDenied, "this needs a MUNGE credential")
	}
	ctx, cancel := context.WithTimeout(ctx, backendTimeout)
	defer cancel()
	q := r.URL.Query()
	return d.backend.Access(ctx, r.caller.uid, AccessQuery{q.Get("account"), q.Get("qos"), q.Get("partition")})
}

// Settings returns all settings. For operators.
func (c *Client) Settings(ctx context.Context) (Settings, error) {
	return callOnce[Settings](ctx, c, http.MethodGet, "/v1/settings", nil)
}

// Settings returns all settings. For operators.
func (v Visitor) Settings(ctx context.Context) (Settings, error) {
	return visit[Settings](ctx, v, v.desk.settings, "/v1/settings", nil)
}

// ChangeSettings changes settings at once, and returns those that the request names. For operators.
func (c *Client) ChangeSettings(ctx context.Context, r SettingsRequest) (Settings, error) {
	return callOnce[Settings](ctx, c, http.MethodPost, "/v1/settings", r)
}

// Access reports whether a job of the caller may evolve.
func (c *Client) Access(ctx context.Context, q AccessQuery) (Access, error) {
	v := url.Values{}
	for name, text := range map[string]string{"account": q.Account, "qos": q.QOS, "partition": q.Partition} {
		if text != "" {
			v.Set(name, text)
		}
	}
	return callOnce[Access](ctx, c, http.MethodGet, "/v1/access?"+v.Encode(), nil)
}
