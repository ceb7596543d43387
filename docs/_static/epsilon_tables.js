// Shows the releases of the chosen epsilon. All of them are in the page.
for (const box of document.querySelectorAll(".skdp-epsilon")) {
  const contents = JSON.parse(box.querySelector("script").textContent);
  const epsilons = Object.keys(contents).sort((a, b) => a - b);
  const rows = box.querySelectorAll("tr.released");
  const slider = box.querySelector("input");
  const show = () => {
    const epsilon = epsilons[slider.value];
    box.querySelector("output").textContent = epsilon;
    slider.setAttribute("aria-valuetext", `epsilon ${epsilon}`);
    contents[epsilon].forEach(([value, interval, mark, low, high], k) => {
      rows[k].cells[1].textContent = value;
      rows[k].cells[2].textContent = interval;
      const band = rows[k].querySelector(".band");
      band.style.left = `${low}%`;
      band.style.width = `${high - low}%`;
      rows[k].querySelector(".mark").style.left = `${mark}%`;
    });
  };
  box.querySelector(".choice").hidden = false;
  slider.addEventListener("input", show);
  show();
}
