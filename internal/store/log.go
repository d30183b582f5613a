package store

import (
	"context"
	"log/slog"

	"go.uber.org/zap/zapcore"
)

// logCore hands etcd's warnings and errors to slog, most of them at level debug. Lower levels are about etcd itself.
type logCore struct {
	log *slog.Logger
}

func newLogCore(log *slog.Logger) zapcore.Core {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return logCore{log.With("part", "store")}
}

func (c logCore) Enabled(l zapcore.Level) bool { return l >= zapcore.WarnLevel }

func (c logCore) With(fields []zapcore.Field) zapcore.Core {
	return logCore{c.log.With(attrs(fields)...)}
}

func (c logCore) Check(e zapcore.Entry, ce *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(e.Level) {
		return ce.AddCore(e, c)
	}
	return ce
}

func (c logCore) Write(e zapcore.Entry, fields []zapcore.Field) error {
	// Most of etcd's warnings, of commits that took over 100 ms and of having no peers, need no action by the reader, and
	// failures are reported by the failing call.
	level := slog.LevelDebug
	if e.Level > zapcore.ErrorLevel {
		level = slog.LevelError
	}
	c.log.Log(context.Background(), level, e.Message, attrs(fields)...)
	return nil
}

func (c logCore) Sync() error { return nil }

func attrs(fields []zapcore.Field) []any {
	enc := zapcore.NewMapObjectEncoder()
	for _, f := range fields {
		f.AddTo(enc)
	}
	out := make([]any, 0, len(enc.Fields))
	for k, v := range enc.Fields {
		out = append(out, slog.Any(k, v))
	}
	return out
}
