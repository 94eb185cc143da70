package models

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/prometheus/procfs"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/lab/bench"
)

// contender is a model in a separate process, kept warm between its turns. It prints "ready" and answers these
// requests, one per line:
//
//	run N          answered by a line of JSON: N times in milliseconds, taken after one execution to warm up
//	outputs DIR    writes the results of the last execution as raw files; a line of JSON lists them as tensorFile
//	profile        of packages: where the time goes, a profile.Profile
//	memory         the process's peak of resident memory in bytes: now, and before it read the model
type contender struct {
	*bench.Peer
	samples [][]float64 // seconds, one slice per turn
}

// start runs a command and waits until it is ready.
func start(ctx context.Context, name string, command ...string) (*contender, error) {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Stderr = os.Stderr
	p, err := bench.Start(name, cmd)
	if err != nil {
		return nil, err
	}
	if line, err := p.Read(); err != nil || line != "ready" {
		return nil, errors.Join(fmt.Errorf("start %s: it said %q and is not ready", name, line), err, p.Close())
	}
	return &contender{Peer: p}, nil
}

// turn executes the model count times and waits until the process is idle.
func (c *contender) turn(count int) error {
	var times []float64
	if err := c.AskJSON(fmt.Sprintf("run %d", count), &times); err != nil {
		return err
	}
	for i := range times {
		times[i] /= 1e3
	}
	c.samples = append(c.samples, times)
	return c.settle()
}

// settlePoll is how long a process must use no processor time to count as idle. The kernel counts in ticks of 10 ms.
const (
	settlePoll = 30 * time.Millisecond
	settleMax  = 2 * time.Second
)

// settle waits until the contender's process is idle. Threads of a pool may spin for a while after their last work,
// which would take processor time from the next contender.
func (c *contender) settle() error {
	process, err := procfs.NewProc(c.PID())
	if err != nil {
		return err
	}
	before := -1.0
	for deadline := time.Now().Add(settleMax); time.Now().Before(deadline); time.Sleep(settlePoll) {
		stat, err := process.Stat()
		if err != nil || stat.CPUTime() == before {
			return err
		}
		before = stat.CPUTime()
	}
	return fmt.Errorf("%s does not become idle after its turn", c.Name)
}

// outputs returns the results of the last execution. dir is for exchanged files.
func (c *contender) outputs(dir string) (map[string]*array.Array, error) {
	var list []tensorFile
	if err := c.AskJSON("outputs "+dir, &list); err != nil {
		return nil, err
	}
	return readTensors(list)
}

// memory returns the growth of the process's peak resident memory by reading and executing the model, and the peak,
// in bytes.
func (c *contender) memory() (model, peak int64, err error) {
	var answer struct{ Peak, Before int64 }
	err = c.AskJSON("memory", &answer)
	return answer.Peak - answer.Before, answer.Peak, err
}
