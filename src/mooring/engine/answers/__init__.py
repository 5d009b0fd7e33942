"""What all nodes say to one shape, kept between pods and asked again only where something changed."""
