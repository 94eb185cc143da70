package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/tilth-dev/tilth/lab/chaos"
)

func main() {
	kind := flag.String("kind", "", "tracker, tuner, builder or runner; or farm, for all of them and a client")
	name := flag.String("name", "", "an agent's name")
	life := flag.Int("life", 0, "an agent's life, over all agents")
	addr := flag.String("tracker", "", "where the tracker listens, or an agent finds it")
	dir := flag.String("dir", "", "folder of the tracker's data, of an agent's journal, or of a farm")
	store := flag.String("store", "", "address of a database that the tracker shares with others; empty = it has a file")
	shards := flag.Int("shards", 1, "how many shards the database has")
	secrets := flag.String("secrets", "", "folder of the tracker's certificate and tokens; empty = it is open")
	seed := flag.Uint64("seed", 1, "draws what befalls a farm")
	skew := flag.Duration("skew", 0, "how far an agent's wall clock is ahead of the machine's")
	points := flag.String("points", "", "failpoints at which a farm's tracker may be killed, between commas")
	flag.Parse()
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer cancel()
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	var err error
	if *store != "" {
		err = chaos.RunShards(ctx, *dir, *addr, *store, *shards, *name+".clock", os.Stdout, log)
	} else {
		err = run(ctx, *kind, *name, *life, *addr, *dir, *secrets, *seed, *points, *skew, log)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", *kind, err)
		cancel()
		os.Exit(1)
	}
}

func run(ctx context.Context, kind, name string, life int, addr, dir, secrets string, seed uint64, points string, skew time.Duration, log *slog.Logger) error {
	switch kind {
	case "tracker":
		return chaos.RunTracker(ctx, dir, addr, secrets, os.Stdout, log)
	case "farm":
		program, err := os.Executable()
		if err != nil {
			return err
		}
		return chaos.RunFarm(ctx, dir, program, seed, strings.Split(points, ","))
	}
	return chaos.RunPretender(ctx, chaos.PretenderConfig{Kind: kind, Name: name, Life: life, Tracker: addr, Dir: dir, Skew: skew, Log: log})
}
