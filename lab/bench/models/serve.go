package models

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/prometheus/procfs"

	"github.com/tilth-dev/tilth/compiler/aot"
	"github.com/tilth-dev/tilth/compiler/aot/profile"
)

// profileRuns is the number of executions for a profile's medians.
const profileRuns = 7

// server runs a package as a contender.
type server struct {
	model  *aot.Model
	before int64
}

// runServer serves a package: PACKAGE.tar INPUTS.json.
func runServer(ctx context.Context, args []string, in io.Reader, out io.Writer) (err error) {
	if len(args) != 2 {
		return fmt.Errorf("want: bench serve PACKAGE.tar INPUTS.json")
	}
	inputs, err := readSpec(args[1])
	if err != nil {
		return err
	}
	s := &server{}
	if s.before, err = peakMemory(); err != nil {
		return err
	}
	if s.model, err = aot.Load(args[0]); err != nil {
		return err
	}
	defer s.model.Close()
	if err := s.model.SetInputs(inputs); err != nil {
		return err
	}
	if err := s.model.Execute(); err != nil {
		return err
	}
	fmt.Fprintln(out, "ready")
	for lines := bufio.NewScanner(in); lines.Scan(); {
		command, argument, _ := strings.Cut(lines.Text(), " ")
		answer, err := s.answer(ctx, command, argument)
		if err != nil {
			return err
		}
		if err := json.NewEncoder(out).Encode(answer); err != nil {
			return err
		}
	}
	return nil
}

func (s *server) answer(ctx context.Context, command, argument string) (any, error) {
	switch command {
	case "run":
		count, err := strconv.Atoi(argument)
		if err != nil {
			return nil, err
		}
		times, err := s.model.Time(ctx, count, 1)
		for i := range times {
			times[i] *= 1e3
		}
		return times, err
	case "outputs":
		return writeTensors(s.model.Outputs(), argument, "package")
	case "profile":
		return profile.Of(ctx, s.model, profileRuns, s.model.Peak())
	case "memory":
		peak, err := peakMemory()
		return map[string]int64{"Peak": peak, "Before": s.before}, err
	}
	return nil, fmt.Errorf("serve: unknown command %q", command)
}

// peakMemory returns the peak resident memory of this process in bytes.
func peakMemory() (int64, error) {
	process, err := procfs.Self()
	if err != nil {
		return 0, err
	}
	status, err := process.NewStatus()
	return int64(status.VmHWM), err
}
