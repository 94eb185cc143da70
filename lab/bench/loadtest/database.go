package loadtest

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/jackc/pgx/v5"
)

// database observes the trackers' database.
type database struct {
	conn *pgx.Conn
	// server is the server's main process, or 0 if it is not on this machine or inaccessible.
	server int
}

// databaseUsage holds a database's totals. CPU is the time of all server processes in seconds; 0 if unknown.
type databaseUsage struct {
	Transactions int64
	CPU          float64
}

// openDatabase opens the database at an address, or returns nil if the address is empty. It refuses a
// database that contains data, because the simulation kills trackers.
func openDatabase(ctx context.Context, address string) (*database, error) {
	if address == "" {
		return nil, nil
	}
	conn, err := pgx.Connect(ctx, address)
	if err != nil {
		return nil, fmt.Errorf("connect to the database: %w", err)
	}
	d := &database{conn: conn}
	var used bool
	if err := conn.QueryRow(ctx, "SELECT to_regnamespace('tilth') IS NOT NULL").Scan(&used); err != nil {
		return nil, d.fail(ctx, "look at the database", err)
	}
	if used {
		d.close(ctx)
		return nil, fmt.Errorf("the database %s is not empty, a tracker has used it: make a new one (createdb)", conn.Config().Database)
	}
	if d.server, err = d.findServer(ctx); err != nil {
		return nil, d.fail(ctx, "find the processes of the database's server", err)
	}
	return d, nil
}

func (d *database) fail(ctx context.Context, what string, err error) error {
	d.close(ctx)
	return fmt.Errorf("%s: %w", what, err)
}

func (d *database) close(ctx context.Context) {
	if d != nil {
		_ = d.conn.Close(ctx) // nothing was written
	}
}

// findServer returns the server's main process: the parent of the backend that serves this connection. A server that
// is reached by socket or loopback may still run in a container with a different PID namespace.
func (d *database) findServer(ctx context.Context) (pid int, err error) {
	var answers int
	var address *netip.Addr // nil = a socket
	err = d.conn.QueryRow(ctx, "SELECT pg_backend_pid(), inet_server_addr()").Scan(&answers, &address)
	if err != nil || address != nil && !address.IsLoopback() {
		return 0, err
	}
	p, err := readStat(answers)
	if err != nil || p.Comm != "postgres" {
		return 0, nil
	}
	if _, err := treeCPU(p.PPID); err != nil {
		return 0, nil
	}
	return p.PPID, nil
}

// usage returns the database's totals; zero without a database.
func (d *database) usage(ctx context.Context) (u databaseUsage, err error) {
	if d == nil {
		return u, nil
	}
	const transactions = "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()"
	if err := d.conn.QueryRow(ctx, transactions).Scan(&u.Transactions); err != nil {
		return u, fmt.Errorf("ask the database for its transactions: %w", err)
	}
	if d.server > 0 {
		u.CPU, err = treeCPU(d.server)
	}
	return u, err
}
