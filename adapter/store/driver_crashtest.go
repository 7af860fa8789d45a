//go:build crashtest

package store

import (
	"database/sql"
	"os"

	"github.com/mattn/go-sqlite3"

	"github.com/evoslurm/evoslurm/adapter/trials/crash"
)

// driver is the database driver's name: sqlite, with every commit told to the test
// before it is made.
const driver = "sqlite3-crashtest"

func init() {
	socket := os.Getenv(crash.SocketVariable)
	sql.Register(driver, &sqlite3.SQLiteDriver{ConnectHook: func(c *sqlite3.SQLiteConn) error {
		if socket != "" {
			c.RegisterCommitHook(func() int {
				if _, err := crash.Ask(socket, crash.Question{Moment: crash.Commit}); err != nil {
					return 1 // the commit becomes a rollback
				}
				return 0
			})
		}
		return nil
	}})
}
