// Process is a process of a campaign's farm: its tracker, or a pretending agent.
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/tilth-dev/tilth/chaos"
)

func main() {
	kind := flag.String("kind", "", "tracker, tuner, builder or runner")
	name := flag.String("name", "", "an agent's name")
	life := flag.Int("life", 0, "an agent's life, over all agents")
	addr := flag.String("tracker", "", "where the tracker listens, or an agent finds it")
	dir := flag.String("dir", "", "folder of the tracker's data, or of an agent's journal")
	flag.Parse()
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer cancel()
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	var err error
	if *kind == "tracker" {
		err = chaos.RunTracker(ctx, *dir, *addr, os.Stdout, log)
	} else {
		err = chaos.RunPretender(ctx, chaos.PretenderConfig{Kind: *kind, Name: *name, Life: *life, Tracker: *addr, Dir: *dir, Log: log})
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", *kind, err)
		cancel()
		os.Exit(1)
	}
}
