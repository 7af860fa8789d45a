package slurmctl

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Token returns a JSON Web Token that slurmctld makes for this process's user, which is good for a time. The site must have
// AuthAltTypes=auth/jwt, and not AuthAltParameters=disable_token_creation.
func (c *Client) Token(ctx context.Context, lifespan time.Duration) (string, error) {
	out, err := c.output(ctx, "scontrol", "token", "lifespan="+strconv.Itoa(int(lifespan/time.Second)))
	if err != nil {
		return "", err
	}
	token, ok := strings.CutPrefix(strings.TrimSpace(out), "SLURM_JWT=")
	if !ok || strings.ContainsAny(token, " \n") {
		return "", fmt.Errorf("scontrol token: %q is not understood", oneLine(out, 80))
	}
	return token, nil
}

// TryToken returns why slurmctld does not answer a caller with this token. Slurm's commands use that in SLURM_JWT, whatever
// AuthType is.
func (c *Client) TryToken(ctx context.Context, token string) error {
	_, _, err := c.run(ctx, command{name: "scontrol", args: []string{"show", "config"}, env: []string{"SLURM_JWT=" + token}})
	return err
}
