//go:build crashtest

package store

import (
	"database/sql"
	"io"
	"net"
	"os"

	"github.com/mattn/go-sqlite3"
)

// driver is the database driver's name: sqlite, with a hook for the test before every commit
// (package crash).
const driver = "sqlite3-crashtest"

func init() {
	socket := os.Getenv("EVOSLURM_CRASHTEST")
	sql.Register(driver, &sqlite3.SQLiteDriver{ConnectHook: func(c *sqlite3.SQLiteConn) error {
		if socket != "" {
			c.RegisterCommitHook(func() int {
				if !mayCommit(socket) {
					return 1 // the commit becomes a rollback
				}
				return 0
			})
		}
		return nil
	}})
}

// mayCommit asks the test, as crash.Ask does, and reports whether it has answered.
func mayCommit(socket string) bool {
	conn, err := net.Dial("unix", socket)
	if err != nil {
		return false
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, `{"Moment": "commit"}`); err != nil {
		return false
	}
	answer, err := io.ReadAll(conn)
	return err == nil && len(answer) > 0
}
