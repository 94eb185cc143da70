package models

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"github.com/tilth-dev/tilth/compiler/array"
)

// contender is a model in a separate process, kept warm between its turns. It answers these requests, one per line:
//
//	run N          answered by a line of JSON: N times in milliseconds, taken after one execution to warm up
//	outputs DIR    writes the results of the last execution as raw files; a line of JSON lists them as tensorFile
//	profile        of packages: where the time goes, a profile.Profile
//	memory         the process's peak of resident memory in bytes: now, and before it read the model
type contender struct {
	name    string
	cmd     *exec.Cmd
	stdin   io.WriteCloser
	stdout  *bufio.Reader
	samples [][]float64 // seconds, one slice per turn
}

// start runs a command and waits until it is ready.
func start(ctx context.Context, name string, command ...string) (*contender, error) {
	c := &contender{name: name, cmd: exec.CommandContext(ctx, command[0], command[1:]...)}
	c.cmd.Stderr = os.Stderr
	var err error
	if c.stdin, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.stdout = bufio.NewReader(out)
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	if line, err := c.stdout.ReadString('\n'); err != nil || strings.TrimSpace(line) != "ready" {
		return nil, fmt.Errorf("start %s: it said %q and is not ready: %w", name, strings.TrimSpace(line), c.stop())
	}
	return c, nil
}

// turn executes the model count times and waits until the process is idle.
func (c *contender) turn(count int) error {
	var times []float64
	if err := c.ask(fmt.Sprintf("run %d", count), &times); err != nil {
		return err
	}
	for i := range times {
		times[i] /= 1e3
	}
	c.samples = append(c.samples, times)
	return c.settle()
}

// outputs returns the results of the last execution. dir is for exchanged files.
func (c *contender) outputs(dir string) (map[string]*array.Array, error) {
	var list []tensorFile
	if err := c.ask("outputs "+dir, &list); err != nil {
		return nil, err
	}
	return readTensors(list)
}

// memory returns the growth of the process's peak resident memory by reading and executing the model, and the peak,
// in bytes.
func (c *contender) memory() (model, peak int64, err error) {
	var answer struct{ Peak, Before int64 }
	err = c.ask("memory", &answer)
	return answer.Peak - answer.Before, answer.Peak, err
}

func (c *contender) ask(question string, answer any) error {
	if _, err := fmt.Fprintln(c.stdin, question); err != nil {
		return fmt.Errorf("ask %s to %s: %w", c.name, question, err)
	}
	line, err := c.stdout.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("ask %s to %s: %w", c.name, question, err)
	}
	if err := json.Unmarshal(line, answer); err != nil {
		return fmt.Errorf("ask %s to %s: it said %.100q: %w", c.name, question, line, err)
	}
	return nil
}

// stop ends the process.
func (c *contender) stop() error {
	c.stdin.Close()
	if err := c.cmd.Wait(); err != nil {
		return fmt.Errorf("%s: %w", c.name, err)
	}
	return nil
}
