//! Machines in this process, and gateways beside real hubs.

mod a_gateway_gone_bad;
mod brings_frames_down;
mod brings_orders_down;
mod is_a_member_of_a_mesh;
mod keeps_order_and_stores_once;
mod meets_what_stands_before_a_hub;
mod names_what_stands_in_its_way;
mod scene;
mod serves_older_hubs;
mod waits_for_its_hub;
