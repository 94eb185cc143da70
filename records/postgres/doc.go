// Package postgres is the store in a PostgreSQL database. It keeps the same rows as the file store, encoded as
// protocol buffers, in tables. Start with migrations.go, which defines the tables; package records defines what rows
// mean.
//
// One process at a time owns the database. It holds an advisory lock, and acquiring that lock starts an epoch. Every
// writing transaction checks and locks the row with the current epoch, so a process that lost the database without
// noticing cannot write (fencing). See tracker.go. The process sends heartbeats, and a waiting process takes over when
// they stop. That only decides when to take over; the epoch makes writes safe. See members.go and await.go.
//
// A database may have several shards, each with its own jobs, agents and devices. A process then owns one shard, and
// statements here about a database apply to each shard. Records are shared. See shards.go and groups.go.
//
// A single goroutine writes. All commits submitted while it is busy share the next transaction. While the server is
// unavailable it waits, and then resumes. Each transaction writes its number; if the response to a commit was lost,
// the number shows whether it took place. See writer.go.
//
// Of several servers it uses the writable one that was promoted last, and follows a promotion. If that server waits
// for a synchronous standby, commits are acknowledged only after the standby has them. See session.go.
package postgres
