package api

import (
	"context"
	"fmt"
	"net/http"
	"os"
)

// impostor is an answer that is not the sidecar's.
type impostor struct{ why string }

func (e impostor) Error() string { return e.why }

// verify reports whether an answer over TCP is the sidecar's own answer to this very request.
func (c *Client) verify(ctx context.Context, t target, credential string, res *http.Response, body []byte) error {
	proof := res.Header.Get(answerHeader)
	if proof == "" {
		return impostor{"the server did not prove that it is the sidecar" + c.said(res, body)}
	}
	decoded, err := c.munge.Decode(ctx, proof)
	if err != nil {
		return fmt.Errorf("the answer's MUNGE credential: %w", err)
	}
	if err := c.trust(ctx, decoded.UID); err != nil {
		return err
	}
	if decoded.Payload != t.answer(credential, res.StatusCode, body) {
		return impostor{"the answer's MUNGE credential is not for this answer" + c.said(res, body)}
	}
	return nil
}

// said quotes a server that did not prove to be the sidecar, for people only.
func (c *Client) said(res *http.Response, body []byte) string {
	text := fmt.Sprint(res.StatusCode, " ", http.StatusText(res.StatusCode))
	if err := c.failure(res.StatusCode, body); res.StatusCode != http.StatusOK && err != nil {
		text = err.Error()
	}
	const most = 300
	return fmt.Sprintf("; it said %q", fmt.Sprintf("%.*s", most, Printable(text)))
}

// trust returns nil for users whose answers are the sidecar's: root, this process's user, and the
// users that Trusts accepts.
func (c *Client) trust(ctx context.Context, uid uint32) error {
	if uid == 0 || int(uid) == os.Geteuid() {
		return nil
	}
	if c.Trusts != nil {
		switch ok, err := c.Trusts(ctx, uid); {
		case err != nil:
			return fmt.Errorf("the answer came from user %s (uid %d), and whether that is the sidecar is not known: %w", userName(uid), uid, err)
		case ok:
			return nil
		}
	}
	return impostor{fmt.Sprintf("the answer came from user %s (uid %d), not from the sidecar", userName(uid), uid)}
}
