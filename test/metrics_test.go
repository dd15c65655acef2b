// SPDX-License-Identifier: Apache-2.0

package test

import (
	"io"
	"net/http"
	"slices"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// families is one scrape.
type families map[string]*dto.MetricFamily

// scrape reads a collector's telemetry as Prometheus does.
func (c *collector) scrape() families {
	c.t.Helper()
	m, err := c.tryScrape()
	if err != nil {
		c.t.Fatal(err)
	}
	return m
}

// tryScrape is for a process that may be gone.
func (c *collector) tryScrape() (families, error) {
	text, err := c.tryExposition()
	if err != nil {
		return nil, err
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	return parser.TextToMetricFamilies(strings.NewReader(text))
}

// exposition returns the text that a scrape reads.
func (c *collector) exposition() string {
	c.t.Helper()
	text, err := c.tryExposition()
	if err != nil {
		c.t.Fatal(err)
	}
	return text
}

func (c *collector) tryExposition() (string, error) {
	resp, err := http.Get("http://" + c.metricsServer + "/metrics")
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return string(text), err
}

// sum adds the series of a metric that have all the labels, each as name=value. A histogram counts its
// points. There is no such series: 0.
func (m families) sum(name string, labels ...string) int64 { return int64(m.value(name, labels...)) }

// value is sum of what has a fraction.
func (m families) value(name string, labels ...string) float64 {
	var sum float64
	for _, s := range m[name].GetMetric() {
		if !hasLabels(s, labels) {
			continue
		}
		switch {
		case s.Gauge != nil:
			sum += s.Gauge.GetValue()
		case s.Counter != nil:
			sum += s.Counter.GetValue()
		case s.Histogram != nil:
			sum += float64(s.Histogram.GetSampleCount())
		}
	}
	return sum
}

func hasLabels(s *dto.Metric, want []string) bool {
	for _, w := range want {
		if !slices.ContainsFunc(s.Label, func(l *dto.LabelPair) bool { return l.GetName()+"="+l.GetValue() == w }) {
			return false
		}
	}
	return true
}

// own returns the names of the governor's and the limiter's metrics.
func (m families) own() []string {
	var names []string
	for name := range m {
		if strings.HasPrefix(name, "otelcol_governor_") || strings.HasPrefix(name, "otelcol_limiter_") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// refusals returns how many batches were refused for a reason.
func (c *collector) refusals(reason string) int64 {
	c.t.Helper()
	return c.scrape().sum("otelcol_governor_batch_duration", "error_type="+reason)
}

// wantIdle waits until nobody holds anything.
func (c *collector) wantIdle() {
	c.t.Helper()
	eventually(c.t, "memory, places and line are empty", func() bool {
		m := c.scrape()
		return m.sum("otelcol_governor_memory_usage")+m.sum("otelcol_governor_concurrency_usage")+
			m.sum("otelcol_governor_queue_usage") == 0
	})
}
