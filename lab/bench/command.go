package bench

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// MaxComplaint bounds the part of a program's messages in an error, in bytes.
const MaxComplaint = 1000

// Output runs a program and returns its output. The error includes the end of its standard error.
func Output(ctx context.Context, name string, args ...string) ([]byte, error) {
	var complaint bytes.Buffer
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stderr, cmd.WaitDelay = &complaint, time.Second
	out, err := cmd.Output()
	if err != nil {
		said := strings.TrimSpace(complaint.String())
		return out, fmt.Errorf("%s %s: %w: %s", filepath.Base(name), args[0], err, said[max(0, len(said)-MaxComplaint):])
	}
	return out, nil
}

// Positive parses comma-separated positive numbers of a flag.
func Positive(flag, text string) (list []int, err error) {
	for _, field := range strings.Split(text, ",") {
		n, err := strconv.Atoi(field)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("%s %s: give positive numbers separated by commas", flag, text)
		}
		list = append(list, n)
	}
	return list, nil
}
