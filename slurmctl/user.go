package slurmctl

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// User is a user of this machine to run commands as.
type User struct {
	UID, GID uint32
	Groups   []uint32 // supplementary
	Name     string
	Home     string // "" if unknown
}

// LookupUser finds a user and the user's groups in the system's databases.
func LookupUser(uid uint32) (*User, error) {
	u, err := user.LookupId(strconv.FormatUint(uint64(uid), 10))
	if err != nil {
		return nil, fmt.Errorf("user %d: %w", uid, err)
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("user %d: group %q: %w", uid, u.Gid, err)
	}
	ids, err := u.GroupIds()
	if err != nil {
		return nil, fmt.Errorf("groups of user %d: %w", uid, err)
	}
	found := &User{UID: uid, GID: uint32(gid), Name: u.Username, Home: u.HomeDir}
	for _, id := range ids {
		g, err := strconv.ParseUint(id, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("groups of user %d: %q: %w", uid, id, err)
		}
		found.Groups = append(found.Groups, uint32(g))
	}
	return found, nil
}

// String returns the name, or the ID of a user without one.
func (u *User) String() string {
	if u == nil {
		return strconv.Itoa(os.Geteuid())
	}
	if u.Name != "" {
		return u.Name
	}
	return strconv.FormatUint(uint64(u.UID), 10)
}

// foreign reports whether u differs from the user of this process.
func (u *User) foreign() bool { return u != nil && int(u.UID) != os.Geteuid() }

// credential returns the identity of the child process, or nil to keep this process's.
func (u *User) credential() *syscall.Credential {
	if !u.foreign() {
		return nil
	}
	return &syscall.Credential{Uid: u.UID, Gid: u.GID, Groups: u.Groups}
}

func (u *User) home() string {
	if u.Home == "" {
		return "/"
	}
	return u.Home
}

// InGroups returns those of some groups that the user is in. A group that does not exist has no members. What IDs
// groups have counts for a minute.
func (c *Client) InGroups(u *User, groups []string) (in []string, err error) {
	for _, name := range groups {
		id, err := c.groups.id(name, time.Now(), user.LookupGroup)
		if err != nil {
			return nil, fmt.Errorf("group %s: %w", name, err)
		}
		if gid, err := strconv.ParseUint(id, 10, 32); err == nil && (uint32(gid) == u.GID || slices.Contains(u.Groups, uint32(gid))) {
			in = append(in, name)
		}
	}
	return in, nil
}

// groupIDs remembers the IDs of groups: a site may list a thousand, its directory may be slow, and any user may ask.
type groupIDs struct {
	mu    sync.Mutex
	since time.Time
	ids   map[string]string // "": there is no such group
}

func (g *groupIDs) id(name string, now time.Time, lookup func(string) (*user.Group, error)) (string, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ids == nil || now.Sub(g.since).Abs() >= time.Minute {
		g.ids, g.since = map[string]string{}, now
	}
	if id, ok := g.ids[name]; ok {
		return id, nil
	}
	found, err := lookup(name)
	if _, unknown := errors.AsType[user.UnknownGroupError](err); unknown {
		found = &user.Group{}
	} else if err != nil {
		return "", err
	}
	g.ids[name] = found.Gid
	return found.Gid, nil
}

// LookupUser is [LookupUser] for callers that have only the client.
func (c *Client) LookupUser(uid uint32) (*User, error) { return LookupUser(uid) }
