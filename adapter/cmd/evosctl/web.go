package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/evoslurm/evoslurm/adapter/cmd/internal/complete"
	"github.com/evoslurm/evoslurm/adapter/show/web"
)

const webHelp = `Serve the page on a port of this machine until interrupted: the past, present and plan of
the cluster by node and by job, each job, and events. It shows what you may read. The
printed address contains a secret, which keeps other users of this machine out, and begins
a session of eight hours. From other machines, use ssh -L, or a proxy (--base).`

func newWeb() *cobra.Command {
	var port int
	var base string
	cmd := &cobra.Command{
		Use:   "web",
		Short: "Serve the page on a port of this machine",
		Long:  webHelp,
		Example: `  evosctl web
  evosctl web --port=8080                       then on your machine: ssh -L 8080:localhost:8080 LOGIN
  evosctl web --port=8080 --base=/node/$HOSTNAME/8080/   behind Open OnDemand`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if port < 0 || port > 65535 {
				return fmt.Errorf("--port=%d: want 0 (any free one) to 65535", port)
			}
			if !strings.HasPrefix(base, "/") {
				return fmt.Errorf("--base=%s: want a path that begins with /", base)
			}
			client, err := connect(cmd)
			if err != nil {
				return err
			}
			ctx, stop := untilSignal(cmd.Context())
			defer stop()
			l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
			if err != nil {
				return fmt.Errorf("--port=%d: %w", port, err)
			}
			page := web.Page{Base: web.NewPath(base), Reader: func(*http.Request) (web.Reader, error) { return client, nil }}
			return serveWeb(ctx, l, page, func(address string) { fmt.Println(address) })
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.IntVar(&port, "port", 0, "port to listen on (0: any free port)")
	f.StringVar(&base, "base", "/", "path at which a proxy serves the page")
	complete.None(cmd, "port", "base")
	return cmd
}

// serveWeb serves the page until ctx ends, and reports its address.
func serveWeb(ctx context.Context, l net.Listener, page web.Page, tell func(address string)) error {
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		return err
	}
	gate := web.Gate{Secret: web.NewSecret()}
	server := http.Server{Handler: gate.Handler(page.Handler()), ReadTimeout: 10 * time.Second, WriteTimeout: time.Minute, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 16 << 10}
	defer context.AfterFunc(ctx, func() { server.Close() })()
	tell(fmt.Sprintf("http://127.0.0.1:%s%s/?token=%s", port, strings.TrimRight(page.Base, "/"), gate.Secret))
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
