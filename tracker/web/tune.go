package web

import (
	"bufio"
	"crypto/rand"
	"errors"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

const tunePath = "/tune"

// Bounds of uploaded models: concurrent uploads, bytes of a model (those of a protocol buffer), and the form's other
// fields.
const (
	maxUploads    = 4
	maxModelBytes = 2 << 30
	maxFields     = 8
)

// tuneForm asks for a model to tune.
func (s *Site) tuneForm(w http.ResponseWriter, r *http.Request) error {
	if err := s.mayTune(r); err != nil {
		return err
	}
	found, _, err := s.findDevices(r.Context(), devicesQuery{}, "", devicesOfCall)
	if err != nil {
		return err
	}
	page := map[string]any{"Classes": slices.Sorted(maps.Keys(classesOf(found))), "Request": rand.Text()}
	return s.render(w, r, http.StatusOK, "tune", layout{Title: "Tune a model", Section: "jobs", Page: page})
}

func (s *Site) mayTune(r *http.Request) error {
	if s.Auth.May(r, tilthv1.ArtifactService_UploadArtifact_FullMethodName, "") && s.Auth.May(r, tilthv1.JobService_SubmitJob_FullMethodName, "") {
		return nil
	}
	return status.Error(codes.PermissionDenied, "models are tuned for clients and admins")
}

// tune receives a model and submits a job that tunes it. The form's fields precede the model, so that nothing is
// stored for a form of another site.
func (s *Site) tune(w http.ResponseWriter, r *http.Request) error {
	if err := s.mayTune(r); err != nil {
		return err
	}
	c := http.NewResponseController(w)
	_ = c.SetWriteDeadline(time.Time{}) // the response may follow long after the request's header
	r.Body = deadlineReader{http.MaxBytesReader(w, r.Body, maxModelBytes+maxFormBytes), c}
	parts, err := r.MultipartReader()
	if err != nil {
		return status.Errorf(codes.InvalidArgument, "read the form: %v", err)
	}
	fields := map[string]string{}
	for range maxFields {
		part, err := parts.NextPart()
		if err != nil {
			return status.Errorf(codes.InvalidArgument, "read the form: %v", err)
		}
		if part.FormName() == "model" {
			return s.tuneModel(w, r, fields, part)
		}
		value, err := io.ReadAll(io.LimitReader(part, maxFormBytes))
		if err != nil {
			return status.Errorf(codes.InvalidArgument, "read the form: %v", err)
		}
		fields[part.FormName()] = string(value)
	}
	return status.Error(codes.InvalidArgument, "the form has no model")
}

func (s *Site) tuneModel(w http.ResponseWriter, r *http.Request, fields map[string]string, model *multipart.Part) error {
	if err := s.Auth.CheckForm(r, fields["form_token"]); err != nil {
		return err
	}
	minutes, err := strconv.Atoi(fields["minutes"])
	if err != nil || minutes < 1 || minutes > 7*24*60 {
		return status.Errorf(codes.InvalidArgument, "minutes %q is not a number from 1 to %d", fields["minutes"], 7*24*60)
	}
	select {
	case s.uploads <- struct{}{}:
		defer func() { <-s.uploads }()
	default:
		return status.Errorf(codes.Unavailable, "%d models are being received: try again", maxUploads)
	}
	file, err := s.receive(r, model)
	if err != nil {
		return err
	}
	name := cut(strings.ToValidUTF8(strings.TrimSuffix(path.Base(model.FileName()), ".onnx"), "_"), maxWorkText)
	made, err := s.jobs.SubmitJob(r.Context(), &tilthv1.SubmitJobRequest{RequestId: fields["request"], Spec: &tilthv1.JobSpec{
		Name: name, Tuner: "gbdt", Numerics: fields["numerics"], Budget: &tilthv1.Budget{Time: durationpb.New(time.Duration(minutes) * time.Minute)},
		Target: &tilthv1.TargetSpec{DeviceClass: fields["class"]}, Model: &tilthv1.ModelSpec{File: file},
	}})
	if err != nil {
		return err
	}
	http.Redirect(w, r, "/jobs/"+url.PathEscape(made.GetJob().GetId()), http.StatusSeeOther)
	return nil
}

// receive stores a model as an artifact. An artifact's digest precedes its bytes, so a file holds them meanwhile.
func (s *Site) receive(r *http.Request, model io.Reader) (*tilthv1.ArtifactRef, error) {
	file, err := os.CreateTemp(s.UploadDir(), "page-*.upload")
	if err != nil {
		return nil, status.Errorf(codes.Internal, "receive the model: %v", err)
	}
	defer os.Remove(file.Name())
	size, err := io.Copy(file, model)
	switch err = errors.Join(err, file.Close()); {
	case err != nil:
		return nil, status.Errorf(codes.InvalidArgument, "receive the model: %v", err)
	case size == 0:
		return nil, status.Error(codes.InvalidArgument, "the model is empty: choose an ONNX file")
	}
	ref, err := s.Upload(r.Context(), "model", file.Name())
	if err != nil {
		return nil, status.Errorf(status.Code(err), "store the model: %s", strings.ReplaceAll(err.Error(), file.Name(), "model"))
	}
	return ref, nil
}

// deadlineReader is a long request in which each read has a deadline of its own.
type deadlineReader struct {
	io.ReadCloser
	c *http.ResponseController
}

// Read implements io.Reader.
func (d deadlineReader) Read(b []byte) (int, error) {
	_ = d.c.SetReadDeadline(time.Now().Add(streamStall))
	return d.ReadCloser.Read(b)
}

// download sends a package that a job ran or made.
func (s *Site) download(w http.ResponseWriter, r *http.Request) error {
	j, err := s.getJob(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	packages := packagesIn(j)
	n, err := strconv.Atoi(r.PathValue("number"))
	if err != nil || n < 0 || n >= len(packages) {
		return status.Errorf(codes.NotFound, "job %s has no package %q", j.GetId(), r.PathValue("number"))
	}
	from := &remoteFile{ctx: r.Context(), client: s.artifacts, digest: packages[n].GetArtifact().GetDigest()}
	defer from.stop()
	content := bufio.NewReader(from)
	if _, err := content.Peek(1); err != nil {
		return err
	}
	name := strings.TrimSuffix(path.Base(packages[n].GetName()), ".tar") + ".tar"
	w.Header().Set("Content-Type", "application/x-tar")
	w.Header().Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": name}))
	if _, err := io.Copy(deadlineWriter{w, http.NewResponseController(w)}, content); err != nil {
		s.Logger.Debug("package not sent", "job", j.GetId(), "error", err)
		panic(http.ErrAbortHandler) // the client must not take it for complete
	}
	return nil
}
