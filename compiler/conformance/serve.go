package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// request asks a process for the results of a batch; answer contains them, or an error. Each is a line of JSON.
type request struct {
	Cases []Location `json:"cases"`
}

type answer struct {
	Results []Result `json:"results,omitempty"`
	Error   string   `json:"error,omitempty"`
}

// Serve answers requests, one after another, until in ends.
func Serve(ctx context.Context, r *Runner, in io.Reader, out io.Writer) error {
	requests, answers := json.NewDecoder(in), json.NewEncoder(out)
	for {
		var q request
		if err := requests.Decode(&q); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("reading a request: %w", err)
		}
		var a answer
		var err error
		if a.Results, err = r.Run(ctx, q.Cases); err != nil {
			a.Error = oneLine(err)
		}
		if err := answers.Encode(a); err != nil {
			return fmt.Errorf("answering: %w", err)
		}
	}
}
