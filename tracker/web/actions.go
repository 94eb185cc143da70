package web

import (
	"cmp"
	"context"
	"crypto/rand"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/tilth-dev/tilth/internal/access"
	"github.com/tilth-dev/tilth/internal/humanize"
	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// maxFormBytes bounds a submitted form.
const maxFormBytes = 16 << 10

// action is an operation on a job or a device that the pages offer.
type action struct {
	// Name appears in URLs and buttons. Method is the gRPC method that it calls, for authorization. Effect explains
	// it.
	Name, Method, Effect string
	// Reason and Duration select the fields of the form.
	Reason, Duration bool
	// onJob and onDevice report whether the action applies in the current state.
	onJob    func(*tilthv1.Job) bool
	onDevice func(*tilthv1.Device) bool
	// do performs it and returns the page to show next; "" for that of the job or device.
	do func(s *Site, ctx context.Context, f filled) (next string, err error)
}

// filled is a submitted form.
type filled struct {
	name, reason, by, request string
	duration                  time.Duration // 0 means no end
}

func open(j *tilthv1.Job) bool { return slices.Contains(openStates, j.GetState()) }

func paused(j *tilthv1.Job) bool { return j.GetState() == tilthv1.JobState_JOB_STATE_PAUSED }

// jobActions are the actions on jobs.
var jobActions = []action{
	{Name: "pause", Method: tilthv1.JobService_PauseJob_FullMethodName, Reason: true,
		Effect: "The job gets no more leases until it is resumed; measurements in progress continue. Its time budget stops.",
		onJob:  func(j *tilthv1.Job) bool { return open(j) && !paused(j) },
		do: func(s *Site, ctx context.Context, f filled) (string, error) {
			_, err := s.jobs.PauseJob(ctx, &tilthv1.PauseJobRequest{JobId: f.name, Reason: f.reason})
			return "", err
		}},
	{Name: "resume", Method: tilthv1.JobService_ResumeJob_FullMethodName, Reason: true, Effect: "The job is queued again.", onJob: paused,
		do: func(s *Site, ctx context.Context, f filled) (string, error) {
			_, err := s.jobs.ResumeJob(ctx, &tilthv1.ResumeJobRequest{JobId: f.name, Reason: f.reason})
			return "", err
		}},
	{Name: "retry", Method: tilthv1.JobService_RetryDeadLetters_FullMethodName, Effect: "Batches that were given up are queued again.",
		onJob: func(j *tilthv1.Job) bool { return open(j) && len(j.GetDeadLetters()) > 0 },
		do: func(s *Site, ctx context.Context, f filled) (string, error) {
			_, err := s.jobs.RetryDeadLetters(ctx, &tilthv1.RetryDeadLettersRequest{JobId: f.name})
			return "", err
		}},
	{Name: "cancel", Method: tilthv1.JobService_CancelJob_FullMethodName, Reason: true,
		Effect: "The job ends and cannot be resumed. Its measurements are kept.", onJob: open,
		do: func(s *Site, ctx context.Context, f filled) (string, error) {
			_, err := s.jobs.CancelJob(ctx, &tilthv1.CancelJobRequest{JobId: f.name, Reason: f.reason})
			return "", err
		}},
	{Name: "package", Method: tilthv1.JobService_MakePackage_FullMethodName,
		Effect: "A builder compiles the model with the best records, in a job of its own, which then offers the package. Asking again makes no second one.",
		onJob:  func(j *tilthv1.Job) bool { return wire.NoPackage(j) == "" },
		do: func(s *Site, ctx context.Context, f filled) (string, error) {
			made, err := s.jobs.MakePackage(ctx, &tilthv1.MakePackageRequest{JobId: f.name})
			return "/jobs/" + url.PathEscape(made.GetJob().GetId()), err
		}},
	{Name: "clone", Method: tilthv1.JobService_SubmitJob_FullMethodName,
		Effect: "A new job with the same tasks, target, search, seed and budget is queued under your name. It reuses earlier measurements.",
		onJob:  func(j *tilthv1.Job) bool { return j.GetSpec().GetRun().GetPackageOf() == "" },
		do: func(s *Site, ctx context.Context, f filled) (string, error) {
			j, err := s.getJob(ctx, f.name)
			if err != nil {
				return "", err
			}
			made, err := s.jobs.SubmitJob(ctx, &tilthv1.SubmitJobRequest{RequestId: f.request, Spec: j.GetSpec()})
			return "/jobs/" + url.PathEscape(made.GetJob().GetId()), err
		}},
}

func cordoned(d *tilthv1.Device) bool { return d.GetCordon() != nil }

// deviceActions are the actions on devices.
var deviceActions = []action{
	{Name: "cordon", Method: tilthv1.DeviceService_CordonDevice_FullMethodName, Reason: true, Duration: true,
		Effect:   "The device gets no more work; work in progress continues.",
		onDevice: func(d *tilthv1.Device) bool { return !cordoned(d) },
		do: func(s *Site, ctx context.Context, f filled) (string, error) {
			req := &tilthv1.CordonDeviceRequest{Name: f.name, By: f.by, Reason: f.reason}
			if f.duration > 0 {
				req.Duration = durationpb.New(f.duration)
			}
			_, err := s.devices.CordonDevice(ctx, req)
			return "", err
		}},
	{Name: "drain", Method: tilthv1.DeviceService_DrainDevice_FullMethodName, Reason: true,
		Effect:   "The device gets no more work until it is uncordoned. It is drained once work in progress has ended.",
		onDevice: func(d *tilthv1.Device) bool { return !cordoned(d) },
		do: func(s *Site, ctx context.Context, f filled) (string, error) {
			_, err := s.devices.DrainDevice(ctx, &tilthv1.DrainDeviceRequest{Name: f.name, By: f.by, Reason: f.reason})
			return "", err
		}},
	{Name: "uncordon", Method: tilthv1.DeviceService_UncordonDevice_FullMethodName, Reason: true, Effect: "The device gets work again.",
		onDevice: cordoned,
		do: func(s *Site, ctx context.Context, f filled) (string, error) {
			_, err := s.devices.UncordonDevice(ctx, &tilthv1.UncordonDeviceRequest{Name: f.name, By: f.by, Reason: f.reason})
			return "", err
		}},
}

// jobActions returns the actions that apply to a job and that the caller may take.
func (s *Site) jobActions(r *http.Request, j *tilthv1.Job) (out []string) {
	for _, a := range jobActions {
		if a.onJob(j) && s.Auth.May(r, a.Method, j.GetSpec().GetOwner()) {
			out = append(out, a.Name)
		}
	}
	return out
}

func (s *Site) deviceActions(r *http.Request, d *tilthv1.Device) (out []string) {
	for _, a := range deviceActions {
		if a.onDevice(d) && s.Auth.May(r, a.Method, "") {
			out = append(out, a.Name)
		}
	}
	return out
}

func find(actions []action, r *http.Request) (action, error) {
	for _, a := range actions {
		if a.Name == r.PathValue("action") {
			return a, nil
		}
	}
	return action{}, status.Errorf(codes.NotFound, "no action %q", r.PathValue("action"))
}

// confirmPage asks for confirmation of an action.
type confirmPage struct {
	action
	Name, Back string
	// Request identifies the form, so that sending it twice submits one job.
	Request string
}

func (s *Site) confirmJob(w http.ResponseWriter, r *http.Request) error {
	a, err := find(jobActions, r)
	if err != nil {
		return err
	}
	j, err := s.getJob(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	p := confirmPage{action: a, Name: j.GetSpec().GetName() + " (" + j.GetId() + ")", Back: "/jobs/" + j.GetId(), Request: rand.Text()}
	return s.render(w, r, http.StatusOK, "confirm", layout{Title: a.Name + " the job", Section: "jobs", Page: p})
}

func (s *Site) confirmDevice(w http.ResponseWriter, r *http.Request) error {
	a, err := find(deviceActions, r)
	if err != nil {
		return err
	}
	name := r.URL.Query().Get("name")
	if _, err := s.devices.GetDevice(r.Context(), &tilthv1.GetDeviceRequest{Name: name}); err != nil {
		return err
	}
	p := confirmPage{action: a, Name: name, Back: "/device?" + query("name", name)}
	return s.render(w, r, http.StatusOK, "confirm", layout{Title: a.Name + " the device", Section: "devices", Page: p})
}

func (s *Site) actOnJob(w http.ResponseWriter, r *http.Request) error {
	return s.act(w, r, jobActions, r.PathValue("id"), "/jobs/"+url.PathEscape(r.PathValue("id")))
}

func (s *Site) actOnDevice(w http.ResponseWriter, r *http.Request) error {
	name := r.URL.Query().Get("name")
	return s.act(w, r, deviceActions, name, "/device?"+query("name", name))
}

// act performs the action of a form and redirects to the job or device.
func (s *Site) act(w http.ResponseWriter, r *http.Request, actions []action, name, back string) error {
	a, err := find(actions, r)
	if err != nil {
		return err
	}
	if err := s.form(w, r); err != nil {
		return err
	}
	f := filled{name: name, reason: r.PostForm.Get("reason"), by: "page", request: r.PostForm.Get("request")}
	if id, is := access.From(r.Context()); is {
		f.by = id.Name
	}
	if text := r.PostForm.Get("duration"); a.Duration && text != "" {
		if f.duration, err = humanize.ParseDuration(text); err != nil || f.duration <= 0 {
			return status.Errorf(codes.InvalidArgument, "duration %q: %v, above 0", text, humanize.ErrDuration)
		}
	}
	next, err := a.do(s, r.Context(), f)
	if err != nil {
		return err
	}
	http.Redirect(w, r, cmp.Or(next, back), http.StatusSeeOther)
	return nil
}

// form parses a form and checks that it comes from this site.
func (s *Site) form(w http.ResponseWriter, r *http.Request) error {
	r.Body = http.MaxBytesReader(w, r.Body, maxFormBytes)
	if err := r.ParseForm(); err != nil {
		return status.Errorf(codes.InvalidArgument, "read the form: %v", err)
	}
	return s.Auth.CheckForm(r, r.PostForm.Get("form_token"))
}

// signInPage is the sign-in form.
type signInPage struct{ Next, Message, Issuer string }

// localPath returns next if it is a path of this site, else "/": it prevents open redirects.
func localPath(next string) string {
	if !strings.HasPrefix(next, "/") || strings.HasPrefix(next, "//") || strings.ContainsAny(next, "\\\r\n\t") {
		return "/"
	}
	return next
}

func (s *Site) signInForm(w http.ResponseWriter, r *http.Request) error {
	if !s.Auth.SignsIn() {
		return status.Error(codes.NotFound, "this tracker takes no tokens: there is nothing to sign in to")
	}
	return s.render(w, r, http.StatusOK, "signin", layout{Title: "Sign in", Page: signInPage{
		Next: localPath(r.URL.Query().Get("next")), Issuer: s.Auth.Issuer(),
	}})
}

func (s *Site) signIn(w http.ResponseWriter, r *http.Request) error {
	if err := s.form(w, r); err != nil {
		return err
	}
	next := localPath(r.PostForm.Get("next"))
	if err := s.Auth.SignIn(w, r, r.PostForm.Get("token")); err != nil {
		code := httpCodes[status.Code(err)]
		return s.render(w, r, max(code, http.StatusBadRequest), "signin", layout{
			Title: "Sign in", Page: signInPage{Next: next, Message: status.Convert(err).Message(), Issuer: s.Auth.Issuer()},
		})
	}
	http.Redirect(w, r, next, http.StatusSeeOther)
	return nil
}

func (s *Site) signOut(w http.ResponseWriter, r *http.Request) error {
	if err := s.form(w, r); err != nil {
		return err
	}
	s.Auth.SignOut(w, r)
	http.Redirect(w, r, signInPath, http.StatusSeeOther)
	return nil
}
