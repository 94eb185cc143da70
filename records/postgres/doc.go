// Package postgres is the store that keeps a PostgreSQL database: the same rows as the store that keeps a file,
// encoded as protocol buffers, in tables of their own. Begin to read in migrations.go, which draws them. What the rows
// mean is for package records to say.
//
// One process at a time has the database. It holds an advisory lock, and whoever gets that begins an epoch. Every
// transaction that writes checks, and locks, the row that says which epoch it is: a process that lost the database
// without knowing writes nothing any more (fencing). See tracker.go. It gives signs of life, and another process that
// waits takes over when these end. That only decides when to take over: what is written is safe by the epoch. See
// heartbeat.go and await.go.
//
// A database may have several shards, each with jobs, agents and devices of its own, and then a process has a shard of
// it: what is said here of a database is so of each. The records are common to all. See shards.go and common.go.
//
// One goroutine writes; whatever was handed in while it was busy goes into the next transaction together. When the
// server is away it waits, and goes on when it is back. Each transaction has a number, which it writes, too: where a
// commit was not answered, the number says whether it took place. See writer.go.
//
// Of several servers it finds the one that takes writes and was promoted last, and goes on with the next one that is.
// Where that waits for a synchronous standby, nothing counts before the standby has it. See session.go.
package postgres
