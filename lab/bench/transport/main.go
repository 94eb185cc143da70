package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/tilth-dev/tilth/internal/retry"
)

// collectPercent keeps the agents' collector from taking much of the machine, as in tilth simulate: after a collection
// once all are there, the next one comes when a run is over.
const collectPercent = 400

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "transport:", err)
		os.Exit(1)
	}
}

// options are what the command line asks for.
type options struct {
	variants     []variant
	devices      int
	rate         float64
	warmup, time time.Duration
	rounds       int
	profile      string
}

func parse(args []string) (o options, err error) {
	flags := flag.NewFlagSet("transport", flag.ContinueOnError)
	names := flags.String("variants", allNames(), "what to measure, with commas between")
	flags.IntVar(&o.devices, "devices", 10000, "runners, each with a connection")
	flags.Float64Var(&o.rate, "rate", 20000, "results a second")
	flags.DurationVar(&o.warmup, "warmup", 5*time.Second, "how long to wait before measuring, once all agents have joined")
	flags.DurationVar(&o.time, "time", 12*time.Second, "how long each run measures")
	flags.IntVar(&o.rounds, "rounds", 1, "runs of each variant, in turns")
	flags.StringVar(&o.profile, "profile", "", "`file` for a profile of the server's processor time, of the last run, with the collection and the parting at its end")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if o.devices < 1 || o.rate <= 0 || o.time <= 0 || o.rounds < 1 {
		return o, errors.New("devices, rate, time and rounds are to be positive")
	}
	o.variants, err = chosen(*names)
	return o, err
}

func run(ctx context.Context, args []string) error {
	if len(args) == 1 && args[0] == serveArgument {
		return serve(os.Stdin, os.Stdout)
	}
	o, err := parse(args)
	if err != nil {
		return err
	}
	debug.SetGCPercent(collectPercent)
	fmt.Println(heading)
	for range o.rounds {
		for _, v := range o.variants {
			r, err := o.measure(ctx, v)
			if err != nil {
				return fmt.Errorf("%s: %w", v.name, err)
			}
			fmt.Println(r.row())
		}
	}
	return nil
}

// measure runs a farm of a variant.
func (o options) measure(ctx context.Context, v variant) (r result, err error) {
	server, err := start(ctx, orders{Way: v.way, Opaque: v.opaque, Profile: o.profile})
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, server.stop()) }()
	ctx, f, err := v.begin(ctx, server.addr, o.devices, o.rate)
	if f == nil {
		return r, err
	}
	defer func() { err = errors.Join(err, f.end()) }()
	if err != nil {
		return r, err
	}
	return o.watch(ctx, f, server)
}

// watch is what is seen of a farm while it is measured.
func (o options) watch(ctx context.Context, f *fleet, server *process) (r result, err error) {
	runtime.GC()
	if err := retry.Sleep(ctx, o.warmup); err != nil {
		return r, context.Cause(ctx)
	}
	r.name = f.name
	if r.before, err = server.usage(); err != nil {
		return r, err
	}
	cpu, err := ownCPU()
	if err != nil {
		return r, err
	}
	began := time.Now()
	f.meter.set(true)
	if err := retry.Sleep(ctx, o.time); err != nil {
		return r, context.Cause(ctx)
	}
	f.meter.set(false)
	r.took = time.Since(began)
	if r.agentsCPU, err = ownCPU(); err != nil {
		return r, err
	}
	r.agentsCPU -= cpu
	r.meter = &f.meter
	r.after, err = server.usage()
	return r, err
}
