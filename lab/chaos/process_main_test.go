package chaos

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

// processArgument, as the first argument, makes this program a process of a farm.
const processArgument = "process"

// processMain runs a process of a farm: the tracker, a simulated agent, or a whole farm. It returns the exit status.
func processMain(args []string) int {
	f := flag.NewFlagSet(processArgument, flag.ExitOnError)
	kind := f.String("kind", "", "tracker, tuner, builder or runner; or farm, for all of them and a client")
	name := f.String("name", "", "an agent's name")
	life := f.Int("life", 0, "an agent's life, over all agents")
	addr := f.String("tracker", "", "where the tracker listens, or an agent finds it")
	dir := f.String("dir", "", "folder of the tracker's data, of an agent's journal, or of a farm")
	store := f.String("store", "", "address of a database that the tracker shares with others; empty = it has a file")
	shards := f.Int("shards", 1, "how many shards the database has")
	secrets := f.String("secrets", "", "folder of the tracker's certificate and tokens; empty = it is open")
	seed := f.Uint64("seed", 1, "seed of the faults")
	skew := f.Duration("skew", 0, "how far an agent's wall clock is ahead of the machine's")
	points := f.String("points", "", "failpoints at which a farm's tracker may be killed, between commas")
	_ = f.Parse(args) // exits on an error
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer cancel()
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	var err error
	switch {
	case *store != "":
		err = runShards(ctx, *dir, *addr, *store, *shards, *name+".clock", os.Stdout, log)
	case *kind == "tracker":
		err = runTracker(ctx, *dir, *addr, *secrets, os.Stdout, log)
	case *kind == "farm":
		err = runFarm(ctx, *dir, binary, *seed, strings.Split(*points, ","))
	default:
		err = runSimulatedAgent(ctx, simulatedAgentConfig{Kind: *kind, Name: *name, Life: *life, Tracker: *addr, Dir: *dir, Skew: *skew, Log: log})
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", *kind, err)
		return 1
	}
	return 0
}
