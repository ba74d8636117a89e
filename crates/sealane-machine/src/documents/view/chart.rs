//! Where all are.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::TeamMemberView;
use super::text::escaped;

/// Where all are, seen from above: nothing but the points and their names.
pub(super) fn put_map(people: &BTreeMap<u64, TeamMemberView<'_>>, out: &mut String) {
    let places: Vec<_> =
        people.values().filter_map(|person| Some((person.name, person.place()?))).collect();
    let Some((_, first)) = places.first() else { return };
    let (mut low, mut high) = (*first, *first);
    for (_, at) in &places {
        for ((low, high), at) in low.iter_mut().zip(&mut high).zip(at) {
            (*low, *high) = (low.min(*at), high.max(*at));
        }
    }
    let [south, west] = low;
    let [north, east] = high;
    // A degree of longitude is shorter than one of latitude.
    let narrow = ((south + north) / 2.0).to_radians().cos().max(0.01);
    let wide = ((east - west) * narrow).max(north - south).max(1e-5);
    out.push_str("<h2>Where</h2><svg viewBox=\"-60 -40 720 480\" role=img aria-label=\"Map\">");
    for (name, [latitude, longitude]) in places {
        let x = (longitude - west) * narrow / wide * 600.0;
        let y = (north - latitude) / wide * 400.0;
        let _ = write!(
            out,
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=5 /><text x=\"{:.1}\" y=\"{y:.1}\">{}</text>",
            x + 9.0,
            escaped(name)
        );
    }
    let _ = write!(out, "</svg><p>{:.0} m across.</p>", wide * 111_195.0);
}
