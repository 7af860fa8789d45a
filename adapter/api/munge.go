package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// Munge runs the munge and unmunge commands, which speak to the munged of this
// machine.
type Munge struct {
	Socket string // munged's; "": munge's own default
	Dir    string // of the two commands; "": looked up in PATH
}

const (
	mungeTimeout  = 5 * time.Second
	maxCredential = 4096 // characters; ours have about 450

	// Exit statuses of munge and unmunge (munge_err_t in munge.h).
	mungeErrSocket   = 6
	mungeErrTimeout  = 7
	mungeErrExpired  = 15
	mungeErrRewound  = 16
	mungeErrReplayed = 17
)

// Credential is a decoded MUNGE credential.
type Credential struct {
	UID, GID         uint32
	Encoded, Decoded time.Time // by the clocks of the two munged
	Payload          string
}

// mungeError is a failed munge or unmunge.
type mungeError struct {
	status int // exit status; -1: it could not run
	text   string
}

func (e *mungeError) Error() string { return e.text }

// away reports that munged did not answer: a matter of waiting, not of rights.
func (e *mungeError) away() bool { return e.status == mungeErrSocket || e.status == mungeErrTimeout }

// Encode makes a credential of the payload, valid for ttl (whole seconds).
func (m Munge) Encode(ctx context.Context, payload string, ttl time.Duration) (string, error) {
	out, err := m.run(ctx, payload, "munge", "--ttl="+strconv.Itoa(int(ttl/time.Second)))
	return strings.TrimSpace(out), err
}

// Decode checks a credential and opens it. munged decodes each credential once.
func (m Munge) Decode(ctx context.Context, credential string) (Credential, error) {
	if !isCredential(credential) {
		return Credential{}, &mungeError{status: -1, text: notCredential}
	}
	out, err := m.run(ctx, credential, "unmunge", "--numeric", "--keys=UID,GID,ENCODE_TIME,DECODE_TIME,LENGTH")
	if err != nil {
		return Credential{}, err
	}
	return parseCredential(out)
}

const notCredential = "not a MUNGE credential"

// isCredential reports whether a text has the form of a credential.
func isCredential(text string) bool {
	return len(text) <= maxCredential && strings.HasPrefix(text, "MUNGE:") && strings.HasSuffix(text, ":")
}

// isToken reports whether a text has the form of a credential by token.
func isToken(text string) bool { return len(text) <= maxCredential && strings.Count(text, ":") == 3 }

// wellFormed returns an error unless a request has a credential, and it has the right form.
func wellFormed(h http.Header) error {
	credential, byToken, err := credentialOf(h)
	switch {
	case err != nil:
		return err
	case credential == "":
		return errors.New("a request with a body needs a MUNGE credential: send the header \"Authorization: MUNGE <credential>\"")
	case byToken && !isToken(credential):
		return errors.New("not a credential by token")
	case !byToken && !isCredential(credential):
		return errors.New(notCredential)
	}
	return nil
}

// parseCredential reads unmunge's "KEY: value" lines, the empty line and the payload.
func parseCredential(out string) (Credential, error) {
	var c Credential
	head, payload, ok := strings.Cut(out, "\n\n")
	if !ok {
		return c, fmt.Errorf("unmunge printed %q: no payload", out)
	}
	values := make(map[string]int64)
	for line := range strings.SplitSeq(head, "\n") {
		key, value, _ := strings.Cut(line, ":")
		n, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
		if err != nil || n < 0 {
			return c, fmt.Errorf("unmunge printed %q", line)
		}
		values[key] = n
	}
	for _, key := range []string{"UID", "GID", "ENCODE_TIME", "DECODE_TIME", "LENGTH"} {
		if _, ok := values[key]; !ok {
			return c, fmt.Errorf("unmunge printed no %s", key)
		}
	}
	if int64(len(payload)) < values["LENGTH"] || values["UID"] > 1<<32-1 || values["GID"] > 1<<32-1 {
		return c, fmt.Errorf("unmunge printed %q: values out of range", head)
	}
	return Credential{
		UID: uint32(values["UID"]), GID: uint32(values["GID"]),
		Encoded: time.Unix(values["ENCODE_TIME"], 0), Decoded: time.Unix(values["DECODE_TIME"], 0),
		Payload: payload[:values["LENGTH"]],
	}, nil
}

func (m Munge) run(ctx context.Context, input, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, mungeTimeout)
	defer cancel()
	if m.Socket != "" {
		args = append(args, "--socket="+m.Socket)
	}
	path := name
	if m.Dir != "" {
		path = m.Dir + "/" + name
	}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.WaitDelay = time.Second
	cmd.Stdin = strings.NewReader(input)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if err == nil {
		return out.String(), nil
	}
	if errors.Is(err, exec.ErrNotFound) {
		return "", err
	}
	e := &mungeError{status: -1}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		e.status = exit.ExitCode()
	}
	if ctx.Err() != nil {
		e.status = mungeErrTimeout
	}
	switch {
	case e.status == mungeErrExpired:
		e.text = "the MUNGE credential has expired (are the clocks of the two machines alike?)"
	case e.status == mungeErrRewound:
		e.text = "the MUNGE credential is from the future (are the clocks of the two machines alike?)"
	case e.status == mungeErrReplayed:
		e.text = "the MUNGE credential has been used before"
	case errs.Len() > 0:
		e.text = strings.TrimSpace(errs.String())
	default:
		e.text = fmt.Sprintf("%s: %v", name, err)
	}
	return "", e
}

const mungeScheme = "MUNGE"

// authorization returns the value of the header that carries a credential.
func authorization(credential string) string { return mungeScheme + " " + credential }

// credentialOf returns the credential in a request's Authorization header, or "" without one, and whether it is by a token.
func credentialOf(h http.Header) (credential string, byToken bool, err error) {
	v := h.Get("Authorization")
	if v == "" {
		return "", false, nil
	}
	scheme, credential, ok := strings.Cut(v, " ")
	credential = strings.TrimSpace(credential)
	switch {
	case ok && strings.EqualFold(scheme, mungeScheme):
		return credential, false, nil
	case ok && strings.EqualFold(scheme, tokenScheme):
		return credential, true, nil
	case strings.EqualFold(scheme, "Bearer"):
		return "", false, errors.New("a bearer token is not accepted, since its readers can use it: call the commands, which prove a token without sending it")
	}
	return "", false, errors.New("the Authorization header is not of the form \"MUNGE <credential>\"")
}
