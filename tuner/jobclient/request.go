package jobclient

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// RequestText returns the request that submits a job, in indented protobuf JSON. Its request_id is derived
// from the job, so that sending it twice creates one job.
func RequestText(spec *tilthv1.JobSpec) ([]byte, error) {
	encoded, err := proto.MarshalOptions{Deterministic: true}.Marshal(spec)
	if err != nil {
		return nil, fmt.Errorf("encode the job: %w", err)
	}
	digest := sha256.Sum256(encoded)
	text, err := protojson.Marshal(&tilthv1.SubmitJobRequest{RequestId: "spec-" + hex.EncodeToString(digest[:16]), Spec: spec})
	if err != nil {
		return nil, fmt.Errorf("print the job: %w", err)
	}
	// protojson varies its whitespace between builds.
	var compact, indented bytes.Buffer
	if err := json.Compact(&compact, text); err != nil {
		return nil, err
	}
	if err := json.Indent(&indented, compact.Bytes(), "", "  "); err != nil {
		return nil, err
	}
	indented.WriteByte('\n')
	return indented.Bytes(), nil
}
