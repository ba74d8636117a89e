//! How long requests take, by route.

use sealane_stream::TimingHistogram;

/// The name for a path that is no route's.
const NONE: &str = "none";

/// One histogram for each route, and one for what is none: a client adds no series.
pub(crate) struct RequestTimings {
    routes: Vec<TimedRoute>,
    none: TimedRoute,
}

/// A route, and how long its requests took until their reply began.
pub(crate) struct TimedRoute {
    pub(crate) path: &'static str,
    /// The path up to what stands for something.
    beginning: &'static str,
    pub(crate) took: TimingHistogram,
}

impl RequestTimings {
    pub(crate) fn new(paths: Vec<&'static str>) -> Self {
        Self {
            routes: paths.into_iter().map(TimedRoute::new).collect(),
            none: TimedRoute::new(NONE),
        }
    }

    /// Where to take down a request of this path: at the route that says most of it.
    pub(crate) fn of(&self, path: &str) -> &TimedRoute {
        let is_of = |route: &&TimedRoute| {
            let is_whole = route.beginning.len() == route.path.len();
            if is_whole { path == route.path } else { path.starts_with(route.beginning) }
        };
        let fitting = self.routes.iter().filter(is_of);
        // Several patterns may fit. The longest fixed beginning is the one that the router takes.
        let route = fitting.max_by_key(|route| (route.beginning.len(), route.path.len()));
        route.unwrap_or(&self.none)
    }

    /// Each route with its histogram, and what is none.
    pub(crate) fn all(&self) -> impl Iterator<Item = &TimedRoute> {
        self.routes.iter().chain([&self.none])
    }
}

impl TimedRoute {
    fn new(path: &'static str) -> Self {
        let beginning = path.split_once('{').map_or(path, |(beginning, _)| beginning);
        Self { path, beginning, took: TimingHistogram::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_path_is_taken_down_at_its_route_and_no_other() {
        let paths = vec!["/", "/v1/streams", "/v1/streams/{*topic}", "/v1/enqueue"];
        let requests = RequestTimings::new(paths);
        for (path, expected) in [
            ("/", "/"),
            ("/v1/enqueue", "/v1/enqueue"),
            ("/v1/enqueue/", NONE),
            ("/v1/streams", "/v1/streams"),
            ("/v1/streams/a/b", "/v1/streams/{*topic}"),
            ("/nothing", NONE),
            ("", NONE),
        ] {
            assert_eq!(requests.of(path).path, expected, "{path}");
        }
    }
}
