package jobclient_test

import (
	"bytes"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tuner/jobclient"
)

// TestRequestIsPrintedAsItIsSent checks that the id is the same each time, and differs between jobs.
func TestRequestIsPrintedAsItIsSent(t *testing.T) {
	spec := &tilthv1.JobSpec{Name: "m", Tasks: []*tilthv1.TaskSpec{{Name: "a", Workload: []byte{0, 255}}}, Budget: &tilthv1.Budget{Trials: 3}}
	text, err := jobclient.RequestText(spec)
	if err != nil {
		t.Fatal(err)
	}
	var read tilthv1.SubmitJobRequest
	if err := protojson.Unmarshal(text, &read); err != nil || !proto.Equal(read.GetSpec(), spec) || read.GetRequestId() == "" {
		t.Errorf("read back as %v, %v", &read, err)
	}
	again, err := jobclient.RequestText(proto.CloneOf(spec))
	if err != nil || !bytes.Equal(again, text) {
		t.Errorf("printed again: %s, %v", again, err)
	}
	spec.Seed = 1
	other, err := jobclient.RequestText(spec)
	var second tilthv1.SubmitJobRequest
	if err != nil || protojson.Unmarshal(other, &second) != nil || second.GetRequestId() == read.GetRequestId() {
		t.Errorf("another job has the request id %s, too: %v", second.GetRequestId(), err)
	}
}
