package config

import "path/filepath"

// Auth says how commands prove over TCP who is calling.
type Auth string

// The ways.
const (
	AuthMunge Auth = "munge"
	AuthJWT   Auth = "jwt" // a token of slurmctld
)

// JWT configures callers by token.
type JWT struct {
	Key string `mapstructure:"key"` // file on the sidecar's host; "": tokens are refused
}

func (c *Config) validateAuth(check func(ok bool, key, format string, args ...any)) {
	check(c.Auth == AuthMunge || c.Auth == AuthJWT, "auth", "%q; want munge or jwt", c.Auth)
	check(c.JWT.Key == "" || filepath.IsAbs(c.JWT.Key), "jwt.key", "%q is not an absolute path", c.JWT.Key)
	check(c.Auth != AuthJWT || c.JWT.Key != "", "jwt.key", "empty; want the file of AuthAltParameters=jwt_key on the sidecar's host")
}
